from django.db import migrations, models

AUTO = {"auto_created": True, "serialize": False, "verbose_name": "ID"}


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", models.BigAutoField(primary_key=True, **AUTO)),
                ("number", models.IntegerField(unique=True)),
                ("amount", models.IntegerField()),
                ("placed_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name="Charge",
            fields=[
                ("id", models.BigAutoField(primary_key=True, **AUTO)),
                ("order_number", models.IntegerField()),
                ("amount", models.IntegerField()),
                ("attempt", models.IntegerField()),
            ],
        ),
    ]
